import { useCallback, useState } from "react";

import { chatAddress, Link, navigate, sessionAddress } from "../app/router";
import { useResource } from "../api/useResource";
import { ChatPanel } from "./ChatPanel";
import type { ChatView } from "./parts";
import { Threads } from "./Threads";
import { pathOf } from "./useThread";

export const NEW = "new";

/** A chat over the whole page, the others at its side. */
export default function ChatPage({ chatId }: { chatId: string }) {
  const [version, setVersion] = useState(0);
  const id = chatId === NEW ? null : chatId;
  const { data: chat } = useResource<ChatView>(id && pathOf(id), null);
  const changed = useCallback(() => setVersion((before) => before + 1), []);
  return (
    <div className="chat-page">
      <Threads sessionId={null} current={id} addressOf={chatAddress} version={version}>
        <Link href={chatAddress(NEW)} className="button">
          New
        </Link>
      </Threads>
      <ChatPanel
        key={chatId}
        chatId={id}
        sessionId={null}
        onChat={(made) => navigate(chatAddress(made), { replace: true })}
        onChange={changed}
        aside={chat?.session_id && <Link href={sessionAddress(chat.session_id)}>session {chat.session_id}</Link>}
      />
    </div>
  );
}
