import { errors } from '../errors.ts';
import type { Group } from '../lib/byte-budget.ts';
import type { Operation } from '../lib/operation.ts';
import { answerMemory } from './answer-memory.ts';
import type { Answer, Host, Question } from './host.ts';
import { mcpServer } from './server.ts';

interface McpCall {
  /** The headers that the transport reads. */
  headers: Headers;
  /** The caller's key and project, sent with the requests to the API. */
  passed: Record<string, string>;
  /** Aborted when the client disconnects. */
  signal: AbortSignal;
  body: unknown;
  /** What the memory of the answers that it reads is counted for. */
  group: Group;
}

export type McpService = ReturnType<typeof mcpService>;

/** Long enough for a login or a video; each tool has its own limit. */
const MOST_MS = 10 * 60_000;

/** All messages of a request are processed concurrently, and each may send requests to the API. */
const MOST_MESSAGES = 20;

/** The tools send HTTP requests to the API like any client, so keys, limits, audit log and nodes apply to each. */
export function mcpService(deps: {
  url: () => string;
  operation: (name: string) => Operation;
  disabled: readonly string[];
  version: string;
}) {
  const disabled = new Set(deps.disabled);

  async function ask(
    { passed, signal }: Pick<McpCall, 'passed' | 'signal'>,
    { method, path, query = {}, body }: Question,
    read: (answer: AsyncIterable<Uint8Array>) => Promise<Buffer>,
  ): Promise<Answer> {
    const url = new URL(path, deps.url());
    for (const [name, value] of Object.entries(query))
      for (const one of Array.isArray(value) ? value : [value])
        if (one !== undefined) url.searchParams.append(name, typeof one === 'string' ? one : JSON.stringify(one));
    const bytes = Buffer.isBuffer(body);
    const type = bytes ? 'application/octet-stream' : 'application/json';
    const answer = await fetch(url, {
      method,
      headers: { ...passed, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined ? {} : { body: bytes ? new Uint8Array(body) : JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(MOST_MS)]),
    });
    return {
      status: answer.status,
      headers: Object.fromEntries(answer.headers),
      bytes: answer.body ? await read(answer.body as AsyncIterable<Uint8Array>) : Buffer.alloc(0),
    };
  }

  return {
    async answer({ headers, passed, signal, body, group }: McpCall): Promise<Response> {
      if (Array.isArray(body) && body.length > MOST_MESSAGES)
        throw errors.bad_request({
          detail: `The body has ${body.length} messages. Send at most ${MOST_MESSAGES} in one request.`,
        });
      const { WebStandardStreamableHTTPServerTransport: Transport } =
        await import('@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js');
      const memory = answerMemory(group, signal);
      const host: Host = {
        ask: (question) => ask({ passed, signal }, question, memory.read),
        operation: deps.operation,
        disabled,
        version: deps.version,
      };
      const server = await mcpServer(host);
      const transport = new Transport({ enableJsonResponse: true });
      try {
        await server.connect(transport);
        const request = new Request(new URL('/mcp', deps.url()), { method: 'POST', headers });
        return await transport.handleRequest(request, { parsedBody: body });
      } finally {
        memory.close();
        await server.close();
      }
    },
  };
}
