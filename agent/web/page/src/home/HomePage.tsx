import type { ChatView, SessionSummary } from "../api/types";
import { useResource } from "../api/useResource";
import { chatAddress, Link, sessionAddress } from "../app/router";
import { Chip, Notice, Time } from "../ui/parts";
import { Words } from "../ui/Words";

export function HomePage() {
  const sessions = useResource<SessionSummary[]>("/v1/sessions");
  const chats = useResource<ChatView[]>("/v1/chats", null);
  if (sessions.refusal && !sessions.data) return <Notice title="No answer">{sessions.refusal.message}</Notice>;
  return (
    <div className="page">
      <h1>Sessions</h1>
      {sessions.data?.length === 0 && (
        <p className="quiet">
          None yet. <code>nightlab research start task.yaml</code> starts one.
        </p>
      )}
      <ul className="cards">
        {sessions.data?.map((one) => (
          <li key={one.session_id} className="card">
            <div className="row">
              <Link href={sessionAddress(one.session_id)}>
                <strong>{one.session_id}</strong>
              </Link>
              <Words text={one.task_name} />
              <span className="spacer" />
              <Chip kind={one.state}>{one.state}</Chip>
            </div>
            {one.result && <Words text={one.result.sentence} />}
            <div className="quiet">
              {one.n_trials} trials, since <Time at={one.created_at} />
            </div>
          </li>
        ))}
      </ul>
      <h2>Chats</h2>
      <ul className="cards">
        {chats.data?.map((one) => (
          <li key={one.chat_id}>
            <Link href={chatAddress(one.chat_id)}>{one.title || one.chat_id}</Link>
          </li>
        ))}
      </ul>
    </div>
  );
}
