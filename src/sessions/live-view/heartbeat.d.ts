export function watchHeartbeat(
  socket: EventTarget,
  signal: AbortSignal,
  hearers: { stalled(): void; resumed(): void; dead(): void },
): void;
