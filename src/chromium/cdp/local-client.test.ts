import { expect, test } from 'vitest';
import { record } from '../../lib/shape.ts';
import type { Sink } from './client.ts';
import { localClient } from './local-client.ts';

test('an event of more values than any event has is not used, however it is written', () => {
  let sink!: Sink;
  const client = localClient((given) => {
    sink = given;
    return { receive() {}, flush() {}, closed() {} };
  });
  const heard: unknown[] = [];
  client.on('Network.requestWillBeSent', record, (params) => heard.push(params));
  const say = (text: string) => sink.send([Buffer.from(text)]);
  const headers = (count: number) => `{${Array.from({ length: count }, (_, at) => `"h${at}":"v"`).join()}}`;
  const method = '"method":"Network.requestWillBeSent"';
  say(`{${method},"params":${headers(20_000)}}`);
  expect(heard).toHaveLength(1);
  say(`{${method},"params":${headers(30_000)}}`);
  say(`{"params":${headers(30_000)},${method}}`);
  expect(heard).toHaveLength(1);
});
