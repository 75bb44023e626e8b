import type { Verb } from '../table.ts';

/** `corral mcp`, and `corral mcp install` */
export const mcp: Verb = {
  name: 'mcp',
  examples: [
    ['', 'a client of MCP starts it; it speaks on stdin and stdout'],
    ['install --for cursor', 'tell a client of it'],
  ],
  run: async (call) => (await import('../does/mcp.ts')).serve(call),
  verbs: [
    {
      name: 'install',
      about: 'Add this server to the configuration of a client, after showing what is written.',
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
