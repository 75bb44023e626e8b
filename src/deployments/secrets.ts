import type { Db } from '../store/db.ts';
import type { Secrets } from '../store/secrets.ts';
import { redactor } from './redact.ts';

/** Sealed under these names, each with the deployment's id. */
const envKind = 'deployment env';
const keyKind = 'deployment key';
const tokenKind = 'deployment token';

const mostRedactors = 100;

export type DeploymentSecrets = ReturnType<typeof deploymentSecrets>;

/** The sealed values of a deployment: its variables, its key, and the token for its repository. Also the environment that its code gets. */
export function deploymentSecrets({ secrets, publicUrl }: { secrets: Secrets; publicUrl: () => string }) {
  const redactors = new Map<string, Promise<(text: string) => string>>();
  const own = async (id: string) => JSON.parse((await secrets.get(envKind, id)) ?? '{}') as Record<string, string>;

  async function redactorOf(id: string) {
    const others = [await secrets.get(keyKind, id), await secrets.get(tokenKind, id)];
    return redactor([...Object.values(await own(id)), ...others.filter((value) => value !== undefined)]);
  }

  return {
    putEnv: (id: string, env: Record<string, string>, within: Db) =>
      secrets.put(envKind, id, JSON.stringify(env), within),
    putToken: (id: string, token: string, within: Db) => secrets.put(tokenKind, id, token, within),
    putKey: (id: string, key: string, within: Db) => secrets.put(keyKind, id, key, within),
    tokenOf: (id: string) => secrets.get(tokenKind, id),

    /** The environment of a worker. */
    async workerEnv(id: string): Promise<Record<string, string>> {
      const key = (await secrets.get(keyKind, id)) ?? '';
      return { ...(await own(id)), KERNEL_BASE_URL: publicUrl(), KERNEL_API_KEY: key };
    },

    /** The environment in which a build reads the apps: there is no key before there is a deployment that runs. */
    async buildEnv(id: string): Promise<Record<string, string>> {
      return { ...(await own(id)), KERNEL_BASE_URL: publicUrl(), KERNEL_API_KEY: 'not-while-building' };
    },

    /** Hides the secrets of a deployment in its lines. */
    redactorOf,

    /** The same for a running deployment: its secrets stay as they are, and to read and open them for each invocation takes longer than a short action. */
    redactorOfRunning(id: string): Promise<(text: string) => string> {
      const there = redactors.get(id) ?? redactorOf(id);
      redactors.delete(id); // so that they are in the order of their last use
      redactors.set(id, there);
      there.catch(() => redactors.delete(id));
      for (const oldest of redactors.keys()) {
        if (redactors.size <= mostRedactors) break;
        redactors.delete(oldest);
      }
      return there;
    },

    /** Forgets the redactor of a stopped deployment. */
    forget: (id: string) => void redactors.delete(id),

    async remove(id: string): Promise<void> {
      for (const kind of [envKind, keyKind, tokenKind]) await secrets.remove(kind, id);
    },
  };
}
