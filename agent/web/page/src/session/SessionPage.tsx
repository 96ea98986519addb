import type { SessionDetail } from "../api/types";
import { useResource } from "../api/useResource";
import { Chip, Notice } from "../ui/parts";

export default function SessionPage({ sessionId }: { sessionId: string }) {
  const { data, refusal } = useResource<SessionDetail>(`/v1/sessions/${encodeURIComponent(sessionId)}`, sessionId);
  if (!data) return refusal ? <Notice title="No such session">{refusal.message}</Notice> : null;
  return (
    <div className="page">
      <h1>
        {data.session_id} <Chip kind={data.state}>{data.state}</Chip>
      </h1>
    </div>
  );
}
