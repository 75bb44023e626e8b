import { expect, test, vi } from 'vitest';
import type { Mux } from '../cdp/mux.ts';
import { serveCdp } from './cdp.ts';
import type { Stream } from './channel.ts';

test('a connection to a browser that has exited ends, and causes no error', async () => {
  const reset = vi.fn<() => void>();
  const stream = { next: async () => undefined, bytes: async () => {}, reset } as unknown as Stream;
  const attach: Mux['attach'] = (sink) => {
    sink.close(1011, 'The browser went away.');
    return { receive() {}, flush() {}, closed() {} };
  };
  serveCdp(stream, { attach });
  expect(reset).toHaveBeenCalledOnce();
});
