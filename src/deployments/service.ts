import { errors } from '../errors.ts';
import type { Upload } from '../uploads/uploads.ts';
import { checkZip } from '../uploads/zip.ts';
import { newId } from '../lib/ids.ts';
import type { ProjectStorage } from '../lib/storage.ts';
import { urlOf } from '../lib/urls.ts';
import type { Db } from '../store/db.ts';
import { appStore, type AppRow } from './app-store.ts';
import { invocationStore, type EndedInvocation } from './invocation-store.ts';
import type { Cut } from '../store/pages.ts';
import type { RunHistory } from './run-history.ts';
import type { App, AppList, Deployment, DeploymentList, GitSource } from './schema.ts';
import type { Keys } from './publisher.ts';
import type { DeploymentSecrets } from './secrets.ts';
import { deploymentStore, type DeploymentRow } from './store.ts';

export type DeploymentService = ReturnType<typeof deploymentService>;

/** What may wait of one project. */
const mostWaiting = 50;
const runnable = /\.(?:[mc]?js|[mc]?ts|tsx|jsx)$/;

export interface NewSource {
  version: string;
  force: boolean;
  region: string | undefined;
  env: Record<string, string>;
  source: { zip: Upload; entrypoint: string } | { git: GitSource };
}

/** The verbs of deployments and apps. */
export function deploymentService(deps: {
  db: Db;
  secrets: DeploymentSecrets;
  keys: Pick<Keys, 'removeHidden'>;
  /** The region of this node, and others that mean the same. */
  region: string;
  /** Why nothing can be run here; undefined when it can. */
  refusal: () => string | undefined;
  /** Ends what runs of invocations that have ended. */
  endBrowsers: (invocationId: string) => Promise<void>;
  storage: ProjectStorage;
  /** Waits for room on a short disk. Refuses if there is none, and a project that has filled the disk. */
  waitForDisk: (projectId: string) => Promise<void>;
  history: Pick<RunHistory, 'note'>;
}) {
  const { db, secrets, keys, region } = deps;
  const store = deploymentStore(db);

  async function find(projectId: string, id: string): Promise<DeploymentRow> {
    const row = await store.findIn(projectId, id);
    if (!row) throw errors.deployment_not_found({ id });
    return row;
  }

  async function create(projectId: string, request: NewSource): Promise<Deployment> {
    const refusal = deps.refusal();
    if (refusal !== undefined) throw errors.no_sandbox({ reason: refusal });
    const asked = request.region;
    if (asked !== undefined && asked !== region && asked !== sdkRegion)
      throw errors.invalid_input({
        detail: `region is '${asked}'; this service has ${region}. Leave it out, or send that.`,
      });
    const { source } = request;
    const entrypoint = 'zip' in source ? source.entrypoint : source.git.entrypoint;
    refuseEntrypoint(entrypoint, 'zip' in source ? 'entrypoint_rel_path' : 'source.entrypoint');
    if ('zip' in source) {
      const names = await checkZip(source.zip.path);
      if (!names.has(entrypoint.replace(/^\.\//, '')))
        throw errors.invalid_input({ detail: `entrypoint_rel_path is '${entrypoint}', and the zip has no such file.` });
    } else refuseGit(source.git);
    await deps.waitForDisk(projectId);
    refuseQueue((await store.countWaiting(projectId)) + 1);
    const claim = deps.storage.claim(projectId);
    try {
      // The zip has a claim of its own.
      const sealedBytes = Object.keys(request.env).length === 0 ? 0 : Buffer.byteLength(JSON.stringify(request.env));
      await claim.cover(sealedBytes);
      return toDeployment(await insertSource(deps, projectId, request, { entrypoint, sealedBytes }));
    } finally {
      await claim.release();
    }
  }

  /** Stops deployments without an app, once nothing runs there any more. */
  async function stopReplaced(): Promise<void> {
    for (const { id } of await store.replacedAndIdle()) await stop(id, 'Another deployment has its apps.');
  }

  /** Ends a deployment and all it has. A second call finds nothing to do. */
  async function stop(id: string, reason: string | null): Promise<void> {
    const ended = await db.transaction(async (tx) => {
      const within = deploymentStore(tx);
      const row = await within.apply(id, 'stop', { reason });
      if (!row) return undefined;
      await appStore(tx).removeOf(id);
      return { row, failed: await invocationStore(tx).failOf(id, 'Its deployment was stopped.') };
    });
    if (!ended) return;
    await tidy(ended.row);
    noteEnded(ended.row, ended.failed);
    await store.tell(`stop ${id}`);
    for (const invocation of ended.failed) await deps.endBrowsers(invocation.id);
  }

  function noteEnded(row: DeploymentRow, failed: readonly EndedInvocation[] = []) {
    const bytes = row.env_names.join().length + (row.status_reason?.length ?? 0);
    deps.history.note(
      row.project_id,
      failed.reduce((sum, { kept_bytes: kept }) => sum + Number(kept), bytes),
    );
  }

  /** Removes what a deployment that runs no more does not need. */
  async function tidy({ id, key_id: keyId }: Pick<DeploymentRow, 'id' | 'key_id'>): Promise<void> {
    if (keyId) await keys.removeHidden(keyId);
    await secrets.remove(id);
    for (const kind of ['source', 'build'] as const) {
      await store.removeFiles(id, kind);
      await store.setBytes(id, 0, kind);
    }
    await store.dropKey(id);
  }

  return {
    find,
    create,
    stop,
    stopReplaced,

    async get(projectId: string, id: string): Promise<Deployment> {
      return toDeployment(await find(projectId, id));
    },

    async list(projectId: string, filter: DeploymentList): Promise<Cut<Deployment>> {
      if (filter.app_version !== undefined && filter.app_name === undefined)
        throw errors.invalid_input({ detail: 'app_version needs app_name: a version is that of an app.' });
      const { rows, cut } = await store.list(projectId, filter);
      return { rows: rows.map(toDeployment), cut };
    },

    async remove(projectId: string, id: string): Promise<void> {
      await find(projectId, id);
      await stop(id, null);
    },

    async apps(projectId: string, filter: AppList): Promise<Cut<App>> {
      const { rows, cut } = await appStore(db).list(projectId, filter);
      return { rows: rows.map(toApp), cut };
    },

    async *appsOf(id: string): AsyncGenerator<App> {
      const apps = appStore(db);
      for (let rows = await apps.of(id); rows.length > 0; rows = await apps.of(id, rows.at(-1)!.app_name))
        for (const row of rows) yield toApp(row);
    },

    async fail(id: string, reason: string): Promise<void> {
      const row = await store.apply(id, 'build_failed', { reason: reason.slice(0, 16_000) });
      if (!row) return;
      await tidy(row);
      noteEnded(row);
    },

    /** Removes what ended deployments still have: a service may have died after one had ended, or have given one up with its node. */
    async tidyEnded(days: number): Promise<void> {
      for (const row of await store.untidy(days)) await tidy(row);
    },

    async endClosedProjects(): Promise<void> {
      for (const id of await store.ofClosedProjects()) await stop(id, 'Its project was archived or deleted.');
    },

    async occupancy(projectId: string): Promise<string | undefined> {
      const count = (await store.ofProject(projectId)).length;
      return count === 0 ? undefined : `${count} ${count === 1 ? 'deployment' : 'deployments'}`;
    },
  };
}

function insertSource(
  { db, secrets, region }: { db: Db; secrets: DeploymentSecrets; region: string },
  projectId: string,
  request: NewSource,
  { entrypoint, sealedBytes }: { entrypoint: string; sealedBytes: number },
): Promise<DeploymentRow> {
  const { source } = request;
  const id = newId();
  return db.transaction(async (tx) => {
    const within = deploymentStore(tx);
    const git = 'git' in source ? source.git : undefined;
    const made = await within.insert({
      id,
      project_id: projectId,
      version: request.version,
      region,
      force: request.force,
      entrypoint,
      env_names: Object.keys(request.env).sort(),
      source_type: git ? 'github' : 'file',
      source_url: git?.url ?? null,
      source_ref: git?.ref ?? null,
      source_path: git?.path ?? null,
      source_checksum: 'zip' in source ? source.zip.sha256 : null,
      source_bytes: sealedBytes + ('zip' in source ? source.zip.size : 0),
    });
    let position = 0;
    if ('zip' in source)
      for await (const piece of source.zip.bytes()) await within.addChunk(id, 'source', position++, piece);
    if (made.env_names.length > 0) await secrets.putEnv(id, request.env, tx);
    if (git?.auth) await secrets.putToken(id, git.auth.token, tx);
    await within.lockQueue(projectId); // as late as this, so that no upload waits for that of another
    refuseQueue(await within.countWaiting(projectId));
    await within.tell('build');
    return made;
  });
}

/** What clients of the hosted service send by default. */
const sdkRegion = 'aws.us-east-1a';

function refuseQueue(waiting: number) {
  if (waiting > mostWaiting) throw errors.deployment_queue_full({ most: mostWaiting });
}

function refuseEntrypoint(path: string, field: string) {
  const refuse = (detail: string) => errors.invalid_input({ detail: `${field} ${detail}` });
  if (path.startsWith('/') || path.split('/').includes('..') || path.length > 1024)
    throw refuse('must be a path inside the source, such as src/index.ts.');
  if (path.endsWith('.py')) throw refuse('names a Python file; this service runs JavaScript and TypeScript.');
  if (!runnable.test(path)) throw refuse(`is '${path}'; it must name a JavaScript or TypeScript file.`);
}

function refuseGit({ url, ref, path, auth }: GitSource) {
  const refuse = (detail: string) => errors.invalid_input({ detail });
  const parsed = urlOf(url);
  if (!parsed || !['http:', 'https:'].includes(parsed.protocol) || parsed.username !== '' || parsed.password !== '')
    throw refuse('source.url must be an https address without a user; send a token as source.auth.');
  if (auth && parsed.protocol === 'http:')
    throw refuse(
      'source.auth needs an https address in source.url: on the way to an http one, others can read the token.',
    );
  if (ref.startsWith('-') || /[\s:^~?*[\\]|\.\./.test(ref))
    throw refuse('source.ref is not a branch, a tag or a commit.');
  if (path !== undefined && (path.startsWith('/') || path.split('/').includes('..')))
    throw refuse('source.path must be a path inside the repository.');
}

/** Values are for workers only. */
const redactedEnv = (names: string[]) => Object.fromEntries(names.map((name) => [name, '']));

export function toDeployment(row: DeploymentRow): Deployment {
  const given = <K extends string>(name: K, value: string | null) =>
    (value === null ? {} : { [name]: value }) as { [P in K]?: string };
  return {
    id: row.id,
    created_at: row.created_at.toISOString(),
    updated_at: row.updated_at.toISOString(),
    region: row.region,
    status: row.status,
    entrypoint_rel_path: row.entrypoint,
    env_vars: redactedEnv(row.env_names),
    source_type: row.source_type,
    ...given('status_reason', row.status_reason),
    ...given('source_url', row.source_url),
    ...given('source_ref', row.source_ref),
    ...given('source_path', row.source_path),
    ...given('source_checksum', row.source_checksum),
  };
}

function toApp(row: AppRow): App {
  return {
    id: row.id,
    app_name: row.app_name,
    version: row.version,
    region: row.region,
    deployment: row.deployment_id,
    actions: row.actions.map(({ name }) => ({ name })),
    env_vars: redactedEnv(row.env_names),
  };
}
