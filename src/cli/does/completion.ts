import type { Command } from 'commander';
import { contextsFile, LOCAL, readContexts } from '../client/contexts.ts';
import type { Call, Program } from '../table.ts';

/** The words that may come last, one in a line. */
export async function complete(call: Call): Promise<void> {
  const words = (call.arguments[0] as string[] | undefined) ?? [];
  const found = await candidates(call.program, words, () => Object.keys(readContexts(contextsFile(call.env)).contexts));
  call.output.done(found.join('\n'), found);
}

async function candidates(program: Program, words: readonly string[], contexts: () => string[]): Promise<string[]> {
  const before = words.slice(0, -1);
  const last = words.at(-1) ?? '';
  let command: Command = await program(before.find((word) => !word.startsWith('-')));
  for (const word of before) command = command.commands.find((one) => one.name() === word) ?? command;
  const previous = before.at(-1) ?? '';
  const asked = command.options.find((option) => [option.long, option.short].includes(previous));
  if (asked?.long === '--context') return [...contexts(), LOCAL].filter((name) => name.startsWith(last));
  if (asked?.required) return (asked.argChoices ?? []).filter((choice) => choice.startsWith(last));
  const names = command.commands.map((one) => one.name());
  const flags = command.options.flatMap((option) => (option.hidden ? [] : [option.long!]));
  return [...(last.startsWith('-') ? flags : names)].filter((name) => name.startsWith(last));
}
