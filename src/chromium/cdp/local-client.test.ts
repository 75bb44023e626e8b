import { expect, test } from 'vitest';
import { record } from '../../lib/shape.ts';
import type { Sink } from './client.ts';
import { localClient } from './local-client.ts';
import { isTargetList, isTargetNews } from './shapes.ts';

/** A client, and the browser that it speaks with. */
function spoken() {
  let sink!: Sink;
  const asked: { id: number; method: string }[] = [];
  const client = localClient((at) => {
    sink = at;
    return { receive: (data) => void asked.push(JSON.parse(data.toString())), flush() {}, closed() {} };
  }, 60_000);
  const say = (message: string) => sink.send([Buffer.from(message)]);
  const answer = (result: string) => say(`{"id":${asked.at(-1)!.id},"result":${result}}`);
  return { client, say, answer };
}

const info = (at: number, url: string) => JSON.stringify({ targetId: `T${at}`, type: 'page', title: 'a', url });

test('a list of very long addresses is read with its addresses cut', async () => {
  const { client, answer } = spoken();
  const asked = client.ask(isTargetList, 'Target.getTargets');
  const long = `https://a.test/#${'x'.repeat(1_900_000)}`;
  answer(
    `{"targetInfos":[${Array.from({ length: 15 }, (_, at) => info(at, at === 7 ? 'https://b.test/' : long)).join()}]}`,
  );
  const { targetInfos } = await asked;
  expect(targetInfos.map(({ targetId }) => targetId)).toEqual(Array.from({ length: 15 }, (_, at) => `T${at}`));
  expect(targetInfos[0]!.url).toMatch(/^https:\/\/a\.test\/#x{16000,}… \(\d+ bytes more\)$/);
  expect(targetInfos[7]!.url).toBe('https://b.test/');
});

test('an event with a very long text arrives with it cut', () => {
  const { client, say } = spoken();
  const heard: number[] = [];
  client.on('Target.targetInfoChanged', isTargetNews, ({ targetInfo }) => heard.push(targetInfo.url.length));
  say(`{"method":"Target.targetInfoChanged","params":{"targetInfo":${info(1, 'x'.repeat(40_000_000))}}}`);
  say(`{"method":"Target.targetInfoChanged","params":{"targetInfo":${info(1, 'x'.repeat(50_000))}}}`);
  expect(heard).toEqual([expect.any(Number), 50_000]);
  expect(heard[0]).toBeLessThan(20_000);
});

test('a large picture is read whole', async () => {
  const { client, answer } = spoken();
  const picture = client.send('Page.captureScreenshot');
  answer(`{"data":"${'iVBOR/+'.repeat(5_000_000)}=="}`);
  expect((await picture)['data']).toBe(`${'iVBOR/+'.repeat(5_000_000)}==`);
});

test('an answer that is too large fails its command at once, and no other', async () => {
  const { client, answer } = spoken();
  for (const result of [
    `{"result":{"value":"${'x'.repeat(9_000_000)}"}}`,
    `{"result":{"value":[${'{},'.repeat(200_000)}{}]}}`,
  ]) {
    const large = client.send('Runtime.evaluate', { expression: '1' });
    answer(result);
    await expect(large).rejects.toThrow(/^Runtime.evaluate: the answer of \d+ bytes cannot be read\.$/);
  }
  const next = client.send('Runtime.evaluate', { expression: '1' });
  answer('{"result":{"value":1}}');
  expect(await next).toEqual({ result: { value: 1 } });
});

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
