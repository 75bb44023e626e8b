import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort } from 'node:worker_threads';
import { crc32, deflateSync } from 'node:zlib';

/**
 * A site on a thread of its own, so that its work is not measured. The load event of both pages waits for 300 requests.
 * `/page` has the kinds and sizes of files that pages have (styles, scripts, pictures), from a server 20 ms away. The answers of `/empty`
 * are empty and there at once, so the browser does little but ask.
 */
const distance = 20;
const styles = Array.from({ length: 30 }, (_, n) => `<link rel=stylesheet href=/${n}.css>`);
const scripts = Array.from({ length: 70 }, (_, n) => `<script src=/${n}.js defer></script>`);
const pictures = Array.from({ length: 200 }, (_, n) => `<img src=/${n}.png>`);
const nothing = Array.from({ length: 300 }, (_, n) => `<link rel=stylesheet href=/${n}.none>`);

const files: Record<string, { type: string; body: string | Buffer; after: number }> = {
  page: html([...styles, ...scripts, ...pictures], distance),
  empty: html(nothing, 0),
  css: { type: 'text/css', body: '.a .b > p:hover { margin: 0 1px; color: #123456 }\n'.repeat(160), after: distance },
  js: { type: 'text/javascript', body: '(() => [3, 1, 2].sort().map((n) => n * 2))();\n'.repeat(430), after: distance },
  png: { type: 'image/png', body: png(60), after: distance },
  none: { type: 'text/css', body: '', after: 0 },
};

const site = createServer((request, response) => void answer(request.url ?? '/', response));

async function answer(path: string, response: ServerResponse): Promise<void> {
  const file = files[path.split(/[/.]/).pop() ?? ''];
  if (file?.after) await sleep(file.after);
  response.writeHead(file ? 200 : 404, { 'content-type': file?.type ?? 'text/plain', 'cache-control': 'no-store' });
  response.end(file?.body);
}

function html(tags: string[], after: number) {
  return { type: 'text/html', body: `<!doctype html><title>many</title>${tags.join('\n')}`, after };
}

/** A square picture of noise. 60 pixels a side are 11 KB. */
function png(side: number): Buffer {
  const stride = 1 + side * 3; // each row begins with the number of its filter: 0, none
  const rows = Buffer.alloc(side * stride);
  for (let at = 0, seed = 1; at < rows.length; at++) {
    seed = (seed * 48_271) % 2_147_483_647;
    rows[at] = at % stride === 0 ? 0 : seed;
  }
  const chunk = (name: string, data: Buffer) => {
    const body = Buffer.concat([Buffer.from(name), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const header = Buffer.from([0, 0, 0, side, 0, 0, 0, side, 8, 2, 0, 0, 0]); // 8 bits a colour, red, green and blue
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

// oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
site.listen(0, '127.0.0.1', () => parentPort?.postMessage((site.address() as AddressInfo).port));
