import { parseArgs } from 'node:util';
import { readConfig } from '../config.ts';
import { ServiceError } from '../errors.ts';
import { openLogger } from '../logger.ts';
import { visitStore } from '../store/open.ts';
import { keysCommand } from './keys.ts';
import { nodesCommand } from './nodes.ts';
import { secretsCommand } from './secrets.ts';
import { UsageError, type Command } from './command.ts';

const commands: Record<string, Command> = { keys: keysCommand, secrets: secretsCommand, nodes: nodesCommand };

const help = `corral: for the operator of the machine

It works on the data directory of this machine (CORRAL_DATA_DIR, ./data by default) or on DATABASE_URL, whether the
service runs or not.

${Object.values(commands)
  .flatMap(({ usage }) => usage)
  .map((line) => `  corral ${line}`)
  .join('\n')}

Example: you lost the first key.
  corral keys create --name laptop
`;

async function main(words: string[]) {
  const [name = 'help', ...rest] = words;
  if (['help', '--help', '-h'].includes(name)) return void process.stdout.write(help);
  const command = commands[name];
  if (!command) throw new UsageError(`There is no command '${name}'.`);
  if (rest.some((word) => ['--help', '-h'].includes(word))) {
    return void process.stdout.write(`${command.usage.map((line) => `corral ${line}`).join('\n')}\n`);
  }
  const { values, positionals } = parseArgs({ args: rest, options: command.options, allowPositionals: true });
  const config = readConfig();
  const log = openLogger('warn');
  const visit = await visitStore({ dataDir: config.dataDir, databaseUrl: config.databaseUrl, log });
  try {
    await command.run({
      db: visit.db,
      config,
      positionals,
      values,
      print: (line) => void process.stdout.write(`${line}\n`),
    });
  } finally {
    await visit.close();
  }
}

main(process.argv.slice(2)).catch((error: Error & { code?: string }) => {
  const usage = error instanceof UsageError || error.code?.startsWith('ERR_PARSE_ARGS');
  process.stderr.write(`${usage || error instanceof ServiceError ? error.message : (error.stack ?? error.message)}\n`);
  if (usage) process.stderr.write('corral --help lists the commands.\n');
  process.exitCode = usage ? 2 : 1;
});
