import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { hungUp } from '../api/hung-up.ts';
import { memoryOf } from '../api/large.ts';
import type { McpService } from './service.ts';

/** The kit reads each name and value several times. No tool takes nearly as many. */
const mostValues = 10_000;
const options = { config: { access: 'project' as const, mostValues }, schema: { hide: true } };

/** `POST /mcp`, as the transport "Streamable HTTP" has it. Requests share no state, so any node answers, and there is nothing to close. */
export function mcpRoutes({ mcp }: { mcp: McpService }): FastifyPluginAsyncTypebox {
  return async (app) => {
    app.post('/mcp', options, async (request, reply) => {
      const answer = await mcp.answer({ ...callOf(request), signal: hungUp(reply) });
      return reply
        .code(answer.status)
        .headers(Object.fromEntries(answer.headers))
        .send(Buffer.from(await answer.arrayBuffer()));
    });

    // A client asks whether there is a stream of the server's own messages, or a session to end. There is neither.
    for (const method of ['GET', 'DELETE'] as const)
      app.route({
        ...options,
        method,
        url: '/mcp',
        handler: async (_, reply) => reply.code(405).header('Allow', 'POST').send(),
      });
  };
}

function callOf(request: FastifyRequest) {
  const headers = new Headers();
  for (const name of ['accept', 'content-type', 'mcp-protocol-version']) {
    const value = request.headers[name];
    if (typeof value === 'string') headers.set(name, value);
  }
  const passed: Record<string, string> = {};
  for (const name of ['authorization', 'x-kernel-project-id', 'x-kernel-project']) {
    const value = request.headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return { headers, passed, body: request.body, group: memoryOf(request) };
}
