// What the token of this page may do.

import type { components } from "./wire";
import { useResource } from "./useResource";

export type Role = components["schemas"]["Role"];

/** Whether the page may change things. Until that is known it is taken as true: the service refuses what may not be. */
export function useCanAct(): boolean {
  const asked = useResource<components["schemas"]["Me"]>("/v1/me", null);
  return asked.data?.role !== "reader";
}
