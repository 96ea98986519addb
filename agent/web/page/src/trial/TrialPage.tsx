import type { TrialView } from "../api/types";
import { useResource } from "../api/useResource";
import { Chip, Notice } from "../ui/parts";

export default function TrialPage({ trialId }: { trialId: string }) {
  const { data, refusal } = useResource<TrialView>(`/v1/trials/${encodeURIComponent(trialId)}`);
  if (!data) return refusal ? <Notice title="No such trial">{refusal.message}</Notice> : null;
  return (
    <div className="page">
      <h1>
        {data.trial_id} <Chip kind={data.state}>{data.state}</Chip>
      </h1>
    </div>
  );
}
