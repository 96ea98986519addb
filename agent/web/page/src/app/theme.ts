// Light, dark, or as the system says.

export type Theme = "system" | "light" | "dark";
const KEY = "nightlab-theme";
const ORDER: Theme[] = ["system", "light", "dark"];

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return ORDER.find((one) => one === kept) ?? "system";
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset["theme"] = theme;
}

export function chooseTheme(theme: Theme): void {
  localStorage.setItem(KEY, theme);
  applyTheme(theme);
  window.dispatchEvent(new Event("nightlab-theme"));
}

export function nextTheme(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? "system";
}
