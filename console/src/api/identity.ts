import { useSyncExternalStore } from 'react';

/** The key of this tab. It is stored in the tab's session storage, so no cookie exists and other tabs cannot use it. */
interface Identity {
  key: string;
  /** Set when a sign-in link was exchanged for the key, which is then revoked when the person signs out. */
  keyId?: string;
  project?: string;
}

const place = 'corral.identity';
const listeners = new Set<() => void>();
let current = read();
/** The reason of the end of the last sign-in, for the form. */
let farewell = '';

function read(): Identity | null {
  try {
    const found = JSON.parse(sessionStorage.getItem(place) ?? 'null') as Identity | null;
    return typeof found?.key === 'string' ? found : null;
  } catch {
    return null;
  }
}

export const identity = () => current;
export const lastWords = () => farewell;

export function become(next: Identity | null, words = ''): void {
  current = next;
  farewell = words;
  if (next) sessionStorage.setItem(place, JSON.stringify(next));
  else sessionStorage.removeItem(place);
  for (const listener of listeners) listener();
}

export const useIdentity = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => current,
  );
