import { ChatPanel } from "./ChatPanel";

export default function ChatPage({ chatId }: { chatId: string }) {
  return (
    <div className="page">
      <ChatPanel chatId={chatId} />
    </div>
  );
}
