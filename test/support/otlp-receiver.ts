import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** A span or a log record, as a collector sees it. */
export interface Received {
  kind: 'span' | 'log';
  traceId: string;
  spanId: string;
  parentId: string;
  name: string;
  startNs: bigint;
  endNs: bigint;
  status: number;
  attributes: Record<string, string | number>;
  resource: Record<string, string | number>;
}

/**
 * An OTLP collector over HTTP: reads the protobuf of opentelemetry-proto by its field numbers. `answer` decides what the
 * sender gets; a collector that hangs answers never.
 */
export async function startOtlpReceiver(answer: () => number | 'hang' = () => 200) {
  const received: Received[] = [];
  const headers: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    headers.push(request.headers);
    const status = answer();
    if (status === 'hang') return;
    if (status === 200) received.push(...(request.url === '/v1/traces' ? spansIn(body) : logsIn(body)));
    response.writeHead(status, { 'content-type': 'application/x-protobuf' }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    received,
    /** Of every request. */
    headers,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function spansIn(body: Buffer): Received[] {
  return items(body, (fields) => ({
    kind: 'span',
    traceId: hex(fields, 1),
    spanId: hex(fields, 2),
    parentId: hex(fields, 4),
    name: text(fields, 5),
    startNs: number(fields, 7),
    endNs: number(fields, 8),
    status: Number(number(read(bytes(fields, 15)), 3)),
    attributes: attributes(fields, 9),
  }));
}

function logsIn(body: Buffer): Received[] {
  return items(body, (fields) => ({
    kind: 'log',
    traceId: hex(fields, 9),
    spanId: hex(fields, 10),
    parentId: '',
    name: String(value(bytes(fields, 5))),
    startNs: number(fields, 1),
    endNs: 0n,
    status: Number(number(fields, 2)),
    attributes: attributes(fields, 6),
  }));
}

/** Requests have resources (1); a resource has its attributes (1 in 1) and scopes (2), a scope its spans or records (2). */
function items(body: Buffer, item: (fields: Fields) => Omit<Received, 'resource'>): Received[] {
  return all(read(body), 1).flatMap((one) => {
    const fields = read(one);
    const resource = attributes(read(bytes(fields, 1)), 1);
    return all(fields, 2).flatMap((scope) =>
      all(read(scope), 2).map((encoded) => ({ ...item(read(encoded)), resource })),
    );
  });
}

type Fields = Map<number, (Buffer | bigint)[]>;

/** The wire format of protobuf. */
function read(message: Buffer): Fields {
  const fields: Fields = new Map();
  let at = 0;
  const varint = () => {
    let result = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      result |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return result;
    }
  };
  const take = (length: number) => message.subarray(at, (at += length));
  while (at < message.length) {
    const tag = Number(varint());
    const wire = tag & 7;
    const content =
      wire === 0
        ? varint()
        : wire === 1
          ? take(8).readBigUInt64LE()
          : wire === 5
            ? BigInt(take(4).readUInt32LE())
            : take(Number(varint()));
    fields.set(tag >> 3, [...(fields.get(tag >> 3) ?? []), content]);
  }
  return fields;
}

const all = (fields: Fields, id: number) => (fields.get(id) ?? []).filter((one) => typeof one !== 'bigint');
const bytes = (fields: Fields, id: number) => all(fields, id)[0] ?? Buffer.alloc(0);
const text = (fields: Fields, id: number) => bytes(fields, id).toString();
const hex = (fields: Fields, id: number) => bytes(fields, id).toString('hex');
const number = (fields: Fields, id: number) => (fields.get(id)?.[0] as bigint | undefined) ?? 0n;

function attributes(fields: Fields, id: number): Record<string, string | number> {
  return Object.fromEntries(
    all(fields, id).map((pair) => {
      const keyValue = read(pair);
      return [text(keyValue, 1), value(bytes(keyValue, 2))];
    }),
  );
}

function value(any: Buffer): string | number {
  const fields = read(any);
  return fields.has(3) ? Number(number(fields, 3)) : text(fields, 1);
}
