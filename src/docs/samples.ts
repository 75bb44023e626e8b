import { examples, FileOnDisk, names, type Example } from './examples.ts';
import { literal, python, typescript, variableOf } from './literals.ts';

/** What the samples use of an operation in the OpenAPI document. */
export interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly in: string }[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
  readonly security?: readonly unknown[];
}

export interface Sample {
  readonly lang: string;
  readonly label: string;
  readonly source: string;
}

/** One request, with everything that a sample needs to know. */
interface Request {
  readonly method: string;
  readonly origin: string;
  /** The path in pieces: texts as they are, and variables for ids that only the reader knows. */
  readonly path: readonly string[];
  /** The values of the path's parameters by their names, in order. */
  readonly parameters: readonly (readonly [name: string, value: string])[];
  readonly example: Example;
  readonly needsKey: boolean;
  readonly answer: 'json' | 'pages' | 'events' | 'bytes' | 'nothing';
}

/** The same request in the languages that readers use most. They work unchanged, with the key in `KERNEL_API_KEY`. */
export function samplesOf(method: string, path: string, operation: Operation, origin: string): Sample[] {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => [name!, valueOf(path, name!)] as const);
  const values = new Map(parameters);
  const request: Request = {
    method,
    origin,
    parameters,
    path: path.split(/[{}]/).map((piece, at) => (at % 2 === 1 ? values.get(piece)! : piece)),
    example: examples[`${method} ${path}`] ?? {},
    needsKey: operation.security?.length !== 0,
    answer: answerOf(operation),
  };
  return [
    { lang: 'typescript', label: 'TypeScript', source: inTypeScript(request) },
    { lang: 'python', label: 'Python', source: inPython(request) },
    { lang: 'shell', label: 'curl', source: inShell(request) },
  ];
}

/** The value of a path parameter: the name that an example gave, or a variable for the id. */
function valueOf(path: string, parameter: string): string {
  const room = path.split('/')[1]!;
  if (/^id(_or_name)?$/.test(parameter)) return names[room] ?? `$${nameOfOne(path)}_ID`;
  return `$${parameter.toUpperCase()}`;
}

/** `PROXY` for /proxies/{id}. */
function nameOfOne(path: string): string {
  const room = path.split('/{')[0]!.split('/').at(-1)!;
  return room.replace(/ies$/, 'y').replace(/s$/, '').toUpperCase();
}

function answerOf({ responses, parameters = [] }: Operation): Request['answer'] {
  const [, good] = Object.entries(responses).find(([status]) => status.startsWith('2')) ?? [];
  const [type] = Object.keys(good?.content ?? {});
  if (!type) return 'nothing';
  if (type === 'text/event-stream') return 'events';
  if (!/json|text/.test(type)) return 'bytes';
  return parameters.some(({ name }) => name === 'limit') ? 'pages' : 'json';
}

/** What the SDK's methods for any route answer with, where it is not an object. */
const typeOf: Partial<Record<Request['answer'], string>> = { bytes: '<Response>', events: '<AsyncIterable<object>>' };

function inTypeScript(request: Request): string {
  const { method, example, origin, answer, needsKey } = request;
  const call = example.sdk
    ? sdkCall(example.sdk, request)
    : `client.${method}${typeOf[answer] ?? ''}(${plainArguments(request)})`;
  const answers = {
    json: [`const answer = await ${call};`, 'console.log(answer);'],
    pages: [`for await (const item of ${call}) console.log(item);`],
    events: [`const events = await ${call};`, 'for await (const event of events) console.log(event);'],
    bytes: [
      `const answer = await ${call};`,
      `await writeFile(${typescript.text(example.saveAs ?? 'answer')}, Buffer.from(await answer.arrayBuffer()));`,
    ],
    nothing: [`await ${call};`],
  }[example.sdk || answer !== 'pages' ? answer : 'json'];
  const body = [...(example.sdk ? [] : formOf(example)), ...answers].join('\n');
  const opener = ['createReadStream', 'openAsBlob'].find((name) => body.includes(`${name}(`));
  const imports = [
    opener && `import { ${opener} } from 'node:fs';`,
    body.includes('writeFile(') && "import { writeFile } from 'node:fs/promises';",
    "import Kernel from '@onkernel/sdk';",
  ].filter(Boolean);
  const note = needsKey ? ' // the key: KERNEL_API_KEY' : '';
  return `${imports.join('\n')}\n\nconst client = new Kernel({ baseURL: '${origin}' });${note}\n${body}\n`;
}

/** The SDK takes the last id of the path first, and the others with the rest. */
function sdkCall(sdk: string, { parameters, example }: Request): string {
  const [last, ...others] = [...parameters].reverse();
  const rest = {
    ...Object.fromEntries(others),
    ...example.query,
    ...example.body,
    ...(example.sdkForm ?? example.form),
  };
  const given = [
    last && literal(last[1], typescript),
    example.file && `await openAsBlob('${example.file}')`,
    Object.keys(rest).length > 0 && literal(rest, typescript),
  ].filter((part) => typeof part === 'string');
  return `client.${sdk}(${given.join(', ')})`;
}

/** The arguments of the SDK's methods for any route, if the SDK has no method for it. */
function plainArguments({ path, example, answer }: Request): string {
  const { query, form, body } = example;
  const options = { ...(query && { query }), ...(body && { body }), ...(form && { body: '$FORM' }) };
  const how = { ...(answer === 'bytes' && { __binaryResponse: true }), ...(answer === 'events' && { stream: true }) };
  const texts = path.map((piece) => (variableOf(piece) ? `\${${literal(piece, typescript)}}` : piece));
  const address = texts.join('');
  const written = [
    address.includes('$') ? `\`${address}\`` : `'${address}'`,
    Object.keys({ ...options, ...how }).length > 0 ? literal({ ...options, ...how }, typescript) : '',
  ];
  return written.filter(Boolean).join(', ').replace(literal('$FORM', typescript), 'form');
}

/** Statements that make the form of a route that the SDK has no method for. */
function formOf({ form }: Example): string[] {
  if (!form) return [];
  const fields = Object.entries(form).map(([name, value]) => {
    const written = value instanceof FileOnDisk ? `await openAsBlob('${value.path}')` : typescript.text(value);
    return `form.set('${name}', ${written});`;
  });
  return ['const form = new FormData();', ...fields];
}

function inPython({ method, origin, path, example, needsKey, answer }: Request): string {
  const pieces = path.map((piece) => (variableOf(piece) ? `{os.environ['${variableOf(piece)}']}` : piece)).join('');
  const address = `${origin}${pieces}`;
  const fields = Object.entries(example.form ?? {});
  const files = fields.filter(([, value]) => value instanceof FileOnDisk);
  const texts = fields.filter(([, value]) => !(value instanceof FileOnDisk));
  const given = [
    `${pieces.includes('{os.') ? 'f' : ''}"${address}"`,
    needsKey && `headers={"Authorization": f"Bearer {os.environ['KERNEL_API_KEY']}"}`,
    example.query && `params=${literal(example.query, python, 1)}`,
    example.body && `json=${literal(example.body, python, 1)}`,
    texts.length > 0 && `data=${literal(Object.fromEntries(texts), python, 1)}`,
    files.length > 0 && `files=${literal(Object.fromEntries(files), python, 1)}`,
    example.file && `data=${python.file(example.file)}`,
    answer === 'events' && 'stream=True',
  ].filter(Boolean);
  const after = {
    json: ['print(answer.json())'],
    pages: ['print(answer.json())'],
    events: ['for line in answer.iter_lines(decode_unicode=True):', '    print(line)'],
    bytes: [`with open("${example.saveAs ?? 'answer'}", "wb") as file:`, '    file.write(answer.content)'],
    nothing: [],
  }[answer];
  const lines = [
    `answer = requests.${method}(`,
    ...given.map((part) => `    ${part as string},`),
    ')',
    'answer.raise_for_status()',
    ...after,
  ];
  const imports = lines.join('\n').includes('os.environ') ? 'import os\n\nimport requests' : 'import requests';
  return `${imports}\n\n${lines.join('\n')}\n`;
}

function inShell({ method, origin, path, example, needsKey, answer }: Request): string {
  const query = new URLSearchParams(example.query as Record<string, string> | undefined);
  const address = `${origin}${path.join('')}${query.size > 0 ? `?${query.toString()}` : ''}`;
  const parts = [
    `curl -fsS${answer === 'events' ? 'N' : ''}${method === 'get' ? '' : ` -X ${method.toUpperCase()}`} "${address}"`,
    needsKey && '-H "Authorization: Bearer $KERNEL_API_KEY"',
    example.body && `-H "Content-Type: application/json" \\\n  -d '${inQuotes(JSON.stringify(example.body))}'`,
    ...Object.entries(example.form ?? {}).map(([name, value]) =>
      value instanceof FileOnDisk ? `-F "${name}=@${value.path}"` : `-F "${name}=${value}"`,
    ),
    example.file && `-H "Content-Type: application/octet-stream" --data-binary @${example.file}`,
    answer === 'bytes' && `-o ${example.saveAs ?? 'answer'}`,
  ].filter(Boolean);
  return `${parts.join(' \\\n  ')}\n`;
}

/** Text for single quotes of the shell, with its variables outside of them. */
const inQuotes = (text: string) => text.replace(/'/g, `'\\''`).replace(/\$([A-Z_]+)/g, `'"$$$1"'`);
