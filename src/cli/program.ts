import { Command, Option } from 'commander';
import { findTarget } from './client/contexts.ts';
import { operation, pathParameters } from './client/operations.ts';
import type { Field } from '../lib/operation.ts';
import { UsageError } from './fault.ts';
import { flagOf, listed, parseJson, place, placeholderOf, valueOf } from './fields.ts';
import { nearest } from '../lib/nearest.ts';
import { openOutput, type Format } from './output.ts';
import type { Call, Noun, Program, Verb } from './table.ts';

const footer = `
Examples:
  corral browsers create --headless        # on the machine of the service it needs nothing else
  corral login https://corral.example.com  # elsewhere, once
  corral keys create --name laptop         # you lost the first key and have the machine
  corral secrets rotate                    # make a new service key and seal every secret with it

\`corral browsers --help\` lists the verbs of a noun, \`corral browsers create --help\` the options of a verb.
`;

const formats = ['table', 'json', 'jsonl'];

/** The options of every verb. */
const everywhere = () => [
  new Option('-o, --output <format>', 'table, json, or jsonl (one line for each)').choices(formats),
  new Option('--context <name>', 'the name of a service of `corral login`; `local` is the service of this machine'),
  new Option('--project <project>', 'id or name of the project to work in'),
];

export async function buildProgram(
  nouns: readonly Noun[],
  used: string | undefined,
  version: string,
): Promise<Command> {
  const program = new Command('corral')
    .description('Browsers of a Corral service, from the command line.')
    .version(version, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this')
    .enablePositionalOptions() // so that the version in `corral logs app --version 2` is of the app
    .helpCommand('help [command]', 'print the help of a command')
    .exitOverride()
    .configureOutput({ writeErr: () => {} }) // main.ts prints the errors
    .configureHelp({ subcommandTerm: (command) => termOf(command), sortSubcommands: false })
    .addHelpText('after', footer);
  for (const option of everywhere()) program.addOption(option.hideHelp());
  const again: Program = (noun) => buildProgram(nouns, noun, version);
  for (const noun of nouns) {
    const loaded = noun.name === used ? await noun.load?.() : undefined;
    const verbs = Array.isArray(loaded) ? (loaded as readonly Verb[]) : undefined;
    const own = loaded && !verbs ? (loaded as Verb) : {};
    // Only the name and the description of an unused noun are printed, so its verbs are not loaded.
    const whole = { ...noun, ...own, name: noun.name, about: noun.about, ...(verbs ? { verbs } : {}) };
    program.addCommand(build(whole, noun.name, program, again).helpGroup(`${noun.group}:`));
  }
  return program;
}

function termOf(command: Command): string {
  const words = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
  return [command.name(), ...words].join(' ');
}

function build(verb: Verb, path: string, parent: Command, program: Program): Command {
  const what = verb.operation === undefined ? undefined : operation(verb.operation);
  const command = new Command(verb.name).copyInheritedSettings(parent).description(verb.about ?? what?.about ?? '');
  command.addHelpText('after', () => examplesOf(verb, path));
  if (verb.verbs) {
    command.helpCommand(false);
    for (const one of verb.verbs) command.addCommand(build(one, `${path} ${one.name}`, command, program));
    if (!verb.run)
      return command
        .usage('<verb>')
        .argument('[verb]')
        .allowExcessArguments()
        .allowUnknownOption()
        .action(refuse(path, verb.verbs));
  }
  const parameters = what ? pathParameters(what.path).map((name) => name.replace('id_or_name', 'id')) : [];
  const fields = what ? [...what.query, ...what.body] : [];
  const taken = (verb.takes ?? []).map((name) => fields.find((field) => field.name === name)!);
  for (const name of parameters) command.argument(`<${name.replaceAll('_', '-')}>`);
  for (const field of taken) command.argument(argumentOf(field), field.about);
  for (const spelled of verb.arguments ?? []) command.argument(spelled);
  for (const [flags, about] of verb.options ?? []) command.option(flags, about);
  const hidden = new Set([...(verb.takes ?? []), ...(verb.without ?? [])]);
  const shown = fields.filter((field) => !hidden.has(field.name));
  for (const field of shown) for (const option of optionsOf(field)) command.addOption(option);
  if (what?.sends === 'application/json' && shown.length > 0)
    command.option('--body <json>', 'the whole body as JSON, or @file, or @- for stdin; the options add to it');
  if (what && !verb.run && what.query.some((field) => field.name === 'offset'))
    command.option('--all', 'every page, and not only the first');
  const names = new Set(command.options.map((option) => option.long));
  for (const option of everywhere()) if (!names.has(option.long)) command.addOption(option);
  command.action(async (...words: unknown[]) => {
    const self = words.at(-1) as Command;
    const given = words.slice(0, -2) as (string | string[] | undefined)[];
    await perform(verb, { self, given, fields, taken, shown, parameters: parameters.length, program });
  });
  return command;
}

/** The error for a noun without a verb, or with an unknown verb. */
function refuse(path: string, verbs: readonly Verb[]) {
  return (verb: string | undefined) => {
    const names = verbs.map(({ name }) => name);
    const meant = verb === undefined ? undefined : nearest(verb, names);
    const not = verb === undefined ? '' : `, not '${verb}'`;
    throw new UsageError(`'corral ${path}' takes ${listed(names)}${not}.${meant ? ` Did you mean '${meant}'?` : ''}`);
  };
}

interface Given {
  self: Command;
  given: (string | string[] | undefined)[];
  fields: Field[];
  taken: Field[];
  shown: Field[];
  parameters: number;
  program: Program;
}

async function perform(verb: Verb, { self, given, taken, shown, parameters, program }: Given): Promise<void> {
  const what = verb.operation === undefined ? undefined : operation(verb.operation);
  const options = self.optsWithGlobals() as Record<string, unknown>;
  const named = Object.fromEntries(
    self.options.map((option) => [option.long!.slice(2).replace(/^no-/, ''), options[option.attributeName()]]),
  );
  const query: Record<string, unknown> = {};
  const whole = named['body'] as string | undefined;
  const body: Record<string, unknown> = whole === undefined ? {} : (parseJson(whole, '--body') as typeof body);
  const isQuery = (field: Field) => what!.query.includes(field);
  const set = (field: Field, value: unknown) => {
    if (value === undefined) return;
    place(isQuery(field) ? query : body, field.name, valueOf(field, value));
  };
  taken.forEach((field, index) => set(field, given[parameters + index]));
  // Whole objects first: a dotted option adds to the given JSON.
  for (const field of shown) set(field, named[field.name.replaceAll('_', '-')]);
  const filled = new Set([...Object.keys(query), ...Object.keys(body), ...(verb.without ?? [])]);
  const missing = shown.filter((field) => field.required && !filled.has(field.name));
  if (missing.length > 0)
    throw new UsageError(`'${pathOf(self)}' needs ${missing.map((field) => flagOf(field)).join(' and ')}.`);
  const format = ((named['output'] as Format | undefined) ?? 'table') satisfies Format;
  const env = process.env;
  const call: Call = {
    target: () =>
      findTarget(env, {
        context: named['context'] as string | undefined,
        project: named['project'] as string | undefined,
      }),
    output: openOutput(format, process, env),
    arguments: given,
    options: named,
    query,
    body: what?.sends === 'application/json' ? body : undefined,
    env,
    program,
  };
  if (verb.run) return verb.run(call);
  const { perform: plain } = await import('./plain.ts');
  return plain(verb, call);
}

function argumentOf(field: Field): string {
  const name = `${field.name.replaceAll('_', '-')}${field.many ? '...' : ''}`;
  return field.required ? `<${name}>` : `[${name}]`;
}

function optionsOf(field: Field): Option[] {
  const about = field.about + (field.required ? ' (required)' : '');
  const flag = flagOf(field);
  if (field.type === 'boolean') return [new Option(flag, about), new Option(flag.replace('--', '--no-')).hideHelp()];
  const option = new Option(`${flag} <${placeholderOf(field)}>`, about);
  const repeatable = field.many || field.type === 'json';
  return [repeatable ? option.argParser((value, last: string[] | undefined) => [...(last ?? []), value]) : option];
}

function examplesOf(verb: Verb, path: string): string {
  const lines = (verb.examples ?? ofVerbs(verb)).map(
    ([line, about]) => [`corral ${path} ${line}`.trimEnd(), about] as const,
  );
  const width = Math.max(0, ...lines.map(([line]) => line.length));
  if (lines.length === 0) return '';
  return `\nExamples:\n${lines.map(([line, about]) => `  ${line.padEnd(width)}  # ${about}`).join('\n')}\n`;
}

/** A noun shows the first example of its first verbs. */
function ofVerbs({ verbs = [] }: Verb) {
  return verbs
    .slice(0, 3)
    .flatMap(({ name, examples = [] }) =>
      examples.slice(0, 1).map(([line, about]) => [`${name} ${line}`, about] as const),
    );
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();
}
