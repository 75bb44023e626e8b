import autocannon from 'autocannon';
import Fastify from 'fastify';
import { startService } from '../test/support/service.ts';
import { median, type Row } from './rows.ts';

/**
 * An authenticated `GET /org/projects/{id}`, which asks the database, beside a bare Fastify route that answers the same
 * bytes. The two take turns in short slices, so that other load of the machine affects both.
 */
export async function benchHttp(): Promise<Row[]> {
  const service = await startService({ CORRAL_LOG_LEVEL: 'info' });
  const { body: project } = await service.call('GET', '/org/projects/Default');
  const bare = Fastify();
  bare.get('/org/projects/:id', async () => project);
  const bareUrl = await bare.listen({ host: '127.0.0.1', port: 0 });

  const slice = (url: string, headers = {}) =>
    autocannon({ url: `${url}/org/projects/${project.id}`, connections: 16, duration: 2, headers });
  const auth = { authorization: `Bearer ${service.key}` };
  await slice(service.url, auth);
  await slice(bareUrl);
  const ours: { rps: number; p99: number }[] = [];
  const theirs: typeof ours = [];
  for (let round = 0; round < 5; round++) {
    for (const [results, url, headers] of [
      [ours, service.url, auth],
      [theirs, bareUrl, {}],
    ] as const) {
      const { requests, latency, non2xx, errors } = await slice(url, headers);
      if (non2xx + errors > 0) throw new Error(`${non2xx + errors} requests to ${url} failed.`);
      results.push({ rps: requests.average, p99: latency.p99 });
    }
  }
  await bare.close();
  await service.close();

  const of = (results: typeof ours, key: 'rps' | 'p99') => median(results.map((result) => result[key]));
  return [
    {
      what: 'GET /org/projects/{id} with a key, 16 connections',
      value: of(ours, 'rps'),
      unit: 'requests/s',
      beside: `a bare Fastify route (${of(theirs, 'rps').toFixed(0)}/s)`,
      ratio: of(ours, 'rps') / of(theirs, 'rps'),
    },
    {
      what: 'the same, p99',
      value: of(ours, 'p99'),
      unit: 'ms',
      beside: `a bare Fastify route (${of(theirs, 'p99')} ms)`,
      ratio: of(ours, 'p99') / of(theirs, 'p99'),
    },
  ];
}
