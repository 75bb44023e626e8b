import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

/** Starts an MCP server as an agent does, and calls its tools. An answer that is marked as an error throws. */
export async function startMcp(command, args, { cwd, env }) {
  const client = new Client({ name: 'tour', version: '1.0.0' });
  await client.connect(new StdioClientTransport({ command, args, cwd, env, stderr: 'ignore' }));
  const patience = { timeout: 600_000 };
  return {
    async call(name, given = {}) {
      const answer = await client.callTool({ name, arguments: given }, undefined, patience);
      const text = answer.content.map((part) => part.text ?? '').join('\n');
      if (answer.isError) throw new Error(`${name}: ${text}`);
      const image = answer.content.find((part) => part.type === 'image');
      return { text, image: image && Buffer.from(image.data, 'base64') };
    },
    close: () => client.close(),
  };
}
