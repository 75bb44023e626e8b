import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from '../src/store/sql.ts';
import { startService, type Service } from '../test/support/service.ts';
import { Page } from './page.ts';
import { median, type Row } from './rows.ts';

const requests = 300;
const loads = 15;
const million = Number(process.env['BENCH_EVENTS'] ?? 1_000_000);
const on = { enabled: true };
const everything = {
  browser: {
    console: on,
    page: on,
    interaction: on,
    network: on,
    control: on,
    connection: on,
    system: on,
    screenshot: on,
    captcha: on,
  },
};

/** What capturing costs a page, what a session sustains, and how the archive grows and answers. */
export async function benchTelemetry(): Promise<Row[]> {
  const site = createServer((request, response) => {
    const page = request.url === '/';
    response.setHeader('content-type', page ? 'text/html' : 'application/json');
    response.end(page ? document : '{"ok":true}');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  const host = `127.0.0.1:${(site.address() as AddressInfo).port}`;
  const service = await startService({ CORRAL_ALLOW_PRIVATE_HOSTS: host, CORRAL_LOG_LEVEL: 'warn' });
  try {
    return [...(await loadTimes(service, `http://${host}/`)), ...(await archive(service))];
  } finally {
    await service.close();
    site.closeAllConnections();
    site.close();
  }
}

/** A page whose load event waits for 300 requests. */
const document = `<!doctype html><title>many</title>${Array.from({ length: requests }, (_, n) => `<link rel=stylesheet href=/${n}>`).join('')}`;

/** The two take turns, so that a busy machine is busy for both. */
async function loadTimes(service: Service, url: string): Promise<Row[]> {
  const sdk = service.sdk();
  const plain = await sdk.browsers.create({ headless: true, timeout_seconds: 3600 });
  const watched = await sdk.browsers.create({ headless: true, timeout_seconds: 3600, telemetry: everything });
  const [off, capturing] = [await Page.open(plain.cdp_ws_url), await Page.open(watched.cdp_ws_url)];
  const times: { off: number[]; on: number[] } = { off: [], on: [] };
  const timed = async (page: Page) => {
    const start = performance.now();
    await page.goto(url);
    return performance.now() - start;
  };
  await timed(off);
  await timed(capturing);
  for (let round = 0; round < loads; round++) {
    times.off.push(await timed(off));
    times.on.push(await timed(capturing));
  }
  const started = performance.now();
  const said = 20_000;
  await capturing.evaluate(`for (let n = 0; n < ${said}; n++) console.log('message ' + n)`);
  let seen = 0;
  while (seen < said) {
    const { lines } = await service.app.telemetry.page(watched.session_id, {
      limit: 1,
      order: 'desc',
      category: ['console'],
    });
    seen = Number(/message (\d+)/.exec(lines[0] ?? '')?.[1] ?? -1) + 1;
    if (performance.now() - started > 120_000) break;
  }
  const perSecond = seen / ((performance.now() - started) / 1000);
  off.close();
  capturing.close();
  return [
    {
      what: `load of a page with ${requests} requests, everything captured`,
      value: median(times.on),
      unit: 'ms',
      ratio: median(times.on) / median(times.off),
      beside: 'nothing captured',
      bar: '≤ 1.15',
    },
    { what: 'console messages a session sustains, archived', value: perSecond, unit: 'events/s' },
  ];
}

async function archive(service: Service): Promise<Row[]> {
  const { session_id: id } = await service.sdk().browsers.create({ headless: true, telemetry: { enabled: true } });
  const projectId = (await service.call('GET', '/org/projects')).body[0].id as string;
  const { telemetry, store } = service.app;
  const journal = telemetry.capturing(id, projectId)!;
  for (let n = 0; n < million; n++) {
    const data = { request_id: `req_${n}`, operation_id: 'browserCurl', status: 200, duration_ms: n % 1000 };
    journal.add({ ts: Date.now() * 1000, type: 'api_call', category: 'control', source: { kind: 'kernel_api' }, data });
    if (n % 2000 === 0) await telemetry.page(id, { limit: 1, order: 'desc' }); // waits until they are written
  }
  const answers: number[] = [];
  for (let n = 0; n < 20; n++) {
    const start = performance.now();
    const { status, body } = await service.call('GET', `/browsers/${id}/telemetry/events?order=desc&limit=100`);
    answers.push(performance.now() - start);
    if (status !== 200 || body.length !== 100) throw new Error(`The archive answered ${status}.`);
  }
  const bytes = await store.db.row<{ bytes: string }>(
    sql`select coalesce(sum(octet_length(packed)), 0) as bytes from telemetry_chunks where session_id = ${id}`,
  );
  return [
    { what: 'an event in the archive (API calls)', value: Number(bytes!.bytes) / million, unit: 'bytes' },
    { what: 'the last 100 of a million events', value: median(answers), unit: 'ms' },
  ];
}
