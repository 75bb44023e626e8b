import { describe, expect, it } from 'vitest';
import { echo, cleanUpAfterEach } from '../../../test/support/gateway.ts';
import { directDial } from './dial.ts';

cleanUpAfterEach();

describe('dialling', () => {
  it('continues with the next address when one fails or is silent, and uses only checked addresses', async () => {
    const target = await echo();
    const dial = directDial({ staggerMs: 50 });
    const { signal } = new AbortController();
    const socket = await dial(
      { host: 'a.example', port: target, addresses: ['::1', '127.0.0.2', '127.0.0.1'] },
      { signal },
    );
    expect(socket.remoteAddress).toBe('127.0.0.1');
    socket.destroy();
  });
});
