import { useCallback, useState } from "react";

import { chatAddress, Link, navigate, NEW_CHAT, sessionAddress } from "../app/router";
import { useResource } from "../api/useResource";
import { ChatPanel } from "./ChatPanel";
import type { ChatView } from "./parts";
import { Threads } from "./Threads";
import { pathOf } from "./useThread";

/** A chat over the whole page, the others at its side. */
export default function ChatPage({ chatId }: { chatId: string }) {
  const [version, setVersion] = useState(0);
  const id = chatId === NEW_CHAT ? null : chatId;
  const { data: chat } = useResource<ChatView>(id && pathOf(id), null);
  const changed = useCallback(() => setVersion((before) => before + 1), []);
  return (
    <div className="chat-page">
      <Threads sessionId={null} current={id} addressOf={chatAddress} version={version}>
        <Link href={chatAddress(NEW_CHAT)} className="button">
          New
        </Link>
      </Threads>
      <ChatPanel
        chatId={id}
        sessionId={null}
        onChat={(made) => navigate(chatAddress(made), { replace: true })}
        onChange={changed}
        aside={
          <>
            {chat?.session_id && <Link href={sessionAddress(chat.session_id)}>{chat.session_id}</Link>}
            <Link href="/" className="narrow">
              All chats
            </Link>
          </>
        }
      />
    </div>
  );
}
