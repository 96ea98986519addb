import { StrictMode } from "react";
import { createRoot } from "react-dom/client";

import { takeTokenFromAddress } from "./api/token";
import { App } from "./app/App";
import { applyTheme, chosenTheme } from "./app/theme";
import "./ui/theme.css";
import "./ui/parts.css";

takeTokenFromAddress();
applyTheme(chosenTheme());
const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
}
