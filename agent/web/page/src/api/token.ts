// Who the page speaks as. The token comes behind `#` in the link, which browsers do not send, and leaves the address at once.

const KEY = "nightlab-token";

export function takeTokenFromAddress(): void {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return;
  keepToken(given);
  history.replaceState(history.state, "", location.pathname + location.search);
}

export function keepToken(token: string): void {
  localStorage.setItem(KEY, token.trim());
}

export function token(): string | null {
  return localStorage.getItem(KEY);
}

export function forgetToken(): void {
  localStorage.removeItem(KEY);
}
