import { navigate, NEW_CHAT, withQuery } from "../app/router";
import { ChatPanel } from "./ChatPanel";
import { Threads } from "./Threads";

const LIST = "list";

/** The chat beside a page: one, a new one, or the list of those about its session. */
export default function Beside({ sessionId, chat }: { sessionId: string; chat: string }) {
  const go = (to: string | null) => navigate(withQuery("chat", to), { replace: true });
  const buttons = (
    <>
      {chat !== LIST && (
        <button type="button" className="plain" onClick={() => go(LIST)}>
          History
        </button>
      )}
      {chat !== NEW_CHAT && (
        <button type="button" className="plain" onClick={() => go(NEW_CHAT)}>
          New
        </button>
      )}
      <button type="button" className="plain" aria-label="Close chat" onClick={() => go(null)}>
        ✕
      </button>
    </>
  );
  if (chat === LIST) {
    return (
      <section className="chat" aria-label="Chat history">
        <header className="chat-head">
          <h2>Chats of {sessionId}</h2>
          <span className="spacer" />
          {buttons}
        </header>
        <Threads sessionId={sessionId} addressOf={(id) => withQuery("chat", id)} />
      </section>
    );
  }
  const id = chat === NEW_CHAT ? null : chat;
  return <ChatPanel chatId={id} sessionId={sessionId} onChat={go} aside={buttons} />;
}
