import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Pages = Awaited<ReturnType<typeof startPages>>;

const page = `<!doctype html><title>A page</title>
<button onclick="output.value = Number(output.value) + 1">count</button><output id=output>0</output>
<input id=input><div style="height: 5000px"></div>`;

/** A web site on loopback for browsers to visit. `host` is what CORRAL_ALLOW_PRIVATE_HOSTS has to name. Null is never answered. */
export async function startPages(handlers: Record<string, string | null> = {}) {
  const server = createServer((request, response) => {
    const body = handlers[request.url ?? '/'];
    if (body === null) return;
    response.setHeader('content-type', 'text/html');
    response.end(body ?? page);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    host: `127.0.0.1:${port}`,
    url: `http://127.0.0.1:${port}/`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}
