// The address is the state: paths name pages, the query holds filters. Links work with every button of a mouse.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  path: string;
  query: URLSearchParams;
}

const here = (): Place => ({ path: location.pathname, query: new URLSearchParams(location.search) });
const listeners = new Set<() => void>();
const tell = () => listeners.forEach((listener) => listener());

addEventListener("popstate", tell);

export function go(to: string, replace = false) {
  history[replace ? "replaceState" : "pushState"](null, "", to);
  if (!replace) scrollTo(0, 0);
  tell();
}

/// Changes parameters of the query; `undefined` removes one.
export function setQuery(changes: Record<string, string | undefined>, replace = true) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(location.pathname + (text ? `?${text}` : ""), replace);
}

export function usePlace(): Place {
  const [place, set] = useState(here);
  useEffect(() => {
    const changed = () => set(here());
    listeners.add(changed);
    return () => void listeners.delete(changed);
  }, []);
  return place;
}

addEventListener("click", (event) => {
  const link = (event.target as Element | null)?.closest?.("a");
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
