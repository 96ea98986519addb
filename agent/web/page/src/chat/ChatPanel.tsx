import type { ChatView } from "../api/types";
import { useResource } from "../api/useResource";

export function ChatPanel({ chatId }: { chatId: string }) {
  const { data } = useResource<ChatView>(`/v1/chats/${encodeURIComponent(chatId)}`, null);
  return <section aria-label="Chat">{data?.title}</section>;
}
