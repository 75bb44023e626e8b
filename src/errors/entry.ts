/** One error: its status, its meaning in the reference, and the message to the client. */
export function entry<P extends unknown[]>(status: number, meaning: string, message: (...params: P) => string) {
  return { status, meaning, message, retriable: status === 429 || status >= 500 };
}

/** A retry of the request would fail again, or repeat its effect. */
export function final<P extends unknown[]>(status: number, meaning: string, message: (...params: P) => string) {
  return { ...entry(status, meaning, message), retriable: false };
}

export function conflict<P extends unknown[]>(meaning: string, message: (...params: P) => string) {
  return final(409, meaning, message);
}
