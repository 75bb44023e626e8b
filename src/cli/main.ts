import { CommanderError } from 'commander';
import { version } from '../version.ts';
import { exit, isFault } from './fault.ts';
import { nouns } from './nouns.ts';
import { cell } from './output.ts';
import { buildProgram } from './program.ts';

async function main(words: string[]): Promise<void> {
  const program = await buildProgram(nouns, nounOf(words), version);
  if (words.length === 0) return program.outputHelp();
  await program.parseAsync(words, { from: 'user' });
}

/** The first word that is neither an option nor the value of an option. */
function nounOf(words: readonly string[]): string | undefined {
  const withValue = ['-o', '--output', '--context', '--project'];
  const plain = words.filter((word, index) => !word.startsWith('-') && !withValue.includes(words[index - 1] ?? ''));
  return plain[0] === 'help' ? plain[1] : plain[0];
}

function report(error: Error & { code?: string }): void {
  if (error instanceof CommanderError) return reportUsage(error);
  if (isFault(error)) {
    // An error may repeat text of a page.
    const lines = [...error.message.split('\n').map(cell), ...error.details.map((line) => `  ${cell(line)}`)];
    process.stderr.write(`${lines.join('\n')}\n`);
    if (error.exitCode === exit.usage) process.stderr.write('corral --help lists the commands.\n');
    process.exitCode = error.exitCode;
    return;
  }
  if (error.code === 'EPIPE') return; // the reader closed the pipe
  process.stderr.write(`${error.stack ?? error.message}\n`);
  process.exitCode = exit.refused;
}

/** Prints Commander's errors as sentences like those of the other errors. */
function reportUsage(error: CommanderError): void {
  if (error.exitCode === 0) return; // help and version were printed
  const [first = '', hint] = error.message.replace(/^error: /, '').split('\n');
  const unknown = /^unknown command '(.*)'$/.exec(first);
  const sentence = unknown ? `There is no command '${unknown[1]}'.` : `${first[0]?.toUpperCase()}${first.slice(1)}.`;
  const meant = hint
    ? ` ${hint.replace(/^\((.*)\)$/, '$1').replace(/^Did you mean (\S+)\?$/, "Did you mean '$1'?")}`
    : '';
  process.stderr.write(`${sentence}${meant}\ncorral --help lists the commands.\n`);
  process.exitCode = exit.usage;
}

process.stdout.on('error', (error: Error & { code?: string }) => {
  if (error.code === 'EPIPE') process.exit();
  throw error;
});
main(process.argv.slice(2)).catch(report);
