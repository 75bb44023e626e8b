import { samplesOf, type Operation } from './samples.ts';

interface OpenApi {
  readonly info: { readonly description?: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>>;
}
interface Described extends Operation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
}

/** The chapters of the reference in the order in which readers need them, each with the guide that goes with it. */
const chapters: readonly { tag: string; title: string; text: string }[] = [
  { tag: 'browsers', title: 'Browsers', text: 'Sessions of Chromium. [Guide](/docs/guides/using-a-session)' },
  { tag: 'files', title: 'Files', text: 'The files of a session. [Guide](/docs/guides/inside)' },
  { tag: 'processes', title: 'Processes', text: 'Programs inside a session. [Guide](/docs/guides/inside)' },
  { tag: 'computer', title: 'Computer', text: 'Mouse, keyboard, pictures. [Guide](/docs/guides/using-a-session)' },
  { tag: 'replays', title: 'Replays', text: 'Videos of a session. [Guide](/docs/guides/using-a-session)' },
  { tag: 'telemetry', title: 'Telemetry', text: 'What a session did. [Guide](/docs/guides/telemetry)' },
  { tag: 'browser_pools', title: 'Pools', text: 'Warm browsers. [Guide](/docs/guides/pools)' },
  { tag: 'profiles', title: 'Profiles', text: 'What browsers remember. [Guide](/docs/guides/profiles)' },
  {
    tag: 'auth connections',
    title: 'Logins',
    text: 'Profiles that stay logged in. [Guide](/docs/guides/auth-connections)',
  },
  { tag: 'credentials', title: 'Credentials', text: 'What logins type. [Guide](/docs/guides/credentials)' },
  {
    tag: 'credential providers',
    title: 'Credential stores',
    text: 'Password managers. [Guide](/docs/guides/credentials)',
  },
  { tag: 'proxies', title: 'Proxies', text: 'Where traffic leaves. [Guide](/docs/guides/proxies)' },
  { tag: 'extensions', title: 'Extensions', text: 'Extensions of Chromium. [Guide](/docs/guides/extensions)' },
  { tag: 'deployments', title: 'Deployments', text: 'Apps of your own. [Guide](/docs/guides/deployments)' },
  { tag: 'apps', title: 'Apps', text: 'What is deployed. [Guide](/docs/guides/deployments)' },
  { tag: 'invocations', title: 'Invocations', text: 'Runs of apps. [Guide](/docs/guides/deployments)' },
  { tag: 'events', title: 'Events', text: 'What changes in a project, as it happens. [Guide](/docs/guides/events)' },
  { tag: 'projects', title: 'Projects', text: 'Who sees what. [Guide](/docs/guides/operating)' },
  { tag: 'api_keys', title: 'Keys', text: 'Who may call. [Guide](/docs/guides/operating)' },
  { tag: 'limits', title: 'Limits', text: 'How much at once. [Guide](/docs/guides/operating)' },
  { tag: 'audit_logs', title: 'Audit log', text: 'Who changed what. [Guide](/docs/guides/operating)' },
  { tag: 'console', title: 'Console', text: 'Signing in to the console. [Guide](/docs/guides/operating)' },
  { tag: 'status', title: 'Status', text: 'Health and metrics. [Guide](/docs/guides/operating)' },
];

/** Operations of a session that make a chapter of their own, by the part of the path after the session. */
const parts: Readonly<Record<string, string>> = {
  fs: 'files',
  process: 'processes',
  computer: 'computer',
  replays: 'replays',
  telemetry: 'telemetry',
};

const introduction = (origin: string) => `
Every request needs a key: \`Authorization: Bearer $KERNEL_API_KEY\`. \`npm start\` prints the first one. The samples work
unchanged when it is in the environment: those in TypeScript use \`@onkernel/sdk\` at \`${origin}\`, those in Python use \`requests\`.
They find resources of other samples by name (\`demo\`, \`alice\`, …), and resources without a name by a variable.

**Guides**: [all of them](/docs/guides), [a session](/docs/guides/using-a-session), [pools](/docs/guides/pools),
[profiles](/docs/guides/profiles), [logins](/docs/guides/auth-connections), [errors](/docs/guides/errors),
[settings](/docs/guides/settings). The document of this reference for programs is [/openapi.json](/openapi.json).
`;

/** The OpenAPI document as the page shows it: in chapters, with samples that name this service. */
export function pageReference(document: object, origin: string): object {
  const { info, paths, ...rest } = document as OpenApi;
  return {
    ...rest,
    info: { ...info, description: `${info.description ?? ''}\n${introduction(origin)}` },
    servers: [{ url: origin }],
    tags: chapters.map(({ tag, title, text }) => ({ name: tag, 'x-displayName': title, description: text })),
    paths: Object.fromEntries(
      Object.entries(paths).map(([path, methods]) => [
        path,
        Object.fromEntries(
          Object.entries(methods).map(([method, operation]) => [
            method,
            {
              ...operation,
              ...headed(operation),
              tags: chapterOf(path, operation),
              'x-codeSamples': samplesOf(method, path, operation, origin),
            },
          ]),
        ),
      ]),
    ),
  };
}

function chapterOf(path: string, { tags }: Described): readonly string[] {
  const part = parts[/^\/browsers\/\{\w+\}\/(\w+)/.exec(path)?.[1] ?? ''];
  return part ? [part] : (tags ?? []);
}

/** Summaries are sentences. The list of operations shows how they begin, the page the whole. */
function headed({ summary = '', description }: Described): { summary: string; description: string } {
  const [beginning = ''] = summary.split(/[.:;]|, (?:with|and|or|unless|which)\b/);
  const text =
    beginning.length === summary.replace(/\.$/, '').length
      ? description
      : [summary, description].filter(Boolean).join('\n\n');
  return { summary: beginning, description: text ?? '' };
}
