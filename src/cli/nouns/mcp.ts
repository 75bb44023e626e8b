import type { Verb } from '../table.ts';

/** `corral mcp`, and `corral mcp install` */
export const mcp: Verb = {
  name: 'mcp',
  examples: [
    ['', 'started by an MCP client; uses stdin and stdout'],
    ['install --for cursor', 'add it to a client'],
  ],
  run: async (call) => (await import('../does/mcp.ts')).serve(call),
  verbs: [
    {
      name: 'install',
      about: 'Show the change to the configuration of a client, and add this server to it.',
      options: [
        ['--for <client>', 'claude, cursor, windsurf, gemini or vscode'],
        ['-y, --yes', 'write it without asking'],
      ],
      examples: [
        ['--for claude', 'asks before it writes'],
        ['--for vscode --yes', 'into .vscode/mcp.json of this directory'],
      ],
      run: async (call) => (await import('../does/mcp.ts')).install(call),
    },
  ],
};
