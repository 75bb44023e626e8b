import { beginningOf } from '../../lib/text.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { isAllowed, mustAllow } from './allowed.ts';
import type { AttachedPage, AttachedPages } from './attached-pages.ts';
import { isAuthRequired, isPaused } from './shapes.ts';
import { FormsError, type BasicAnswer, type BasicChallenge } from './types.ts';

interface Answer extends BasicAnswer {
  origin: string;
}

/**
 * Chromium reports challenges only for paused requests, so requests are paused and continued at once. A browser with a window would
 * ask a person for a user and password otherwise, for documents and for requests of scripts.
 */
const patterns = (['Document', 'XHR', 'Fetch'] as const).map((resourceType) => ({ urlPattern: '*', resourceType }));

/**
 * HTTP Basic and Digest. A challenge is answered with nothing, so that the page shows its text for visitors without the password,
 * and is remembered for the snapshot. A user and password are given to the origin that they are meant for, for the page itself and not for
 * what its scripts and frames fetch, and once: a second challenge means that they are wrong.
 */
export function basicAuth(client: LocalClient, pages: AttachedPages) {
  const challenges = new WeakMap<AttachedPage, BasicChallenge>();
  /** What the last snapshot said. Only that is answered: a page may go elsewhere, and be asked there, before the answer comes. */
  const reported = new WeakMap<AttachedPage, BasicChallenge>();
  const answers = new WeakMap<AttachedPage, Answer>();
  const refused = new WeakMap<AttachedPage, Set<string>>();

  pages.onSession((_, sessionId) =>
    client.send('Fetch.enable', { handleAuthRequests: true, patterns }, sessionId).catch(() => undefined),
  );
  client.on('Fetch.requestPaused', isPaused, ({ requestId }, sessionId) =>
    client.send('Fetch.continueRequest', { requestId }, sessionId),
  );
  client.on('Fetch.authRequired', isAuthRequired, ({ requestId, frameId, resourceType, authChallenge }, sessionId) => {
    const page = pages.ofSession(sessionId);
    const { source, origin, realm } = authChallenge;
    const answer = page && answers.get(page);
    const give = (authChallengeResponse: {
      response: 'Default' | 'CancelAuth' | 'ProvideCredentials';
      username?: string;
      password?: string;
    }) => client.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }, sessionId);
    if (source === 'Proxy') return give({ response: 'Default' });
    if (page && resourceType === 'Document' && frameId === page.pageId) {
      if (answer?.origin === origin && isAllowed(answer.allow, origin)) {
        answers.delete(page);
        const tried = refused.get(page) ?? new Set();
        refused.set(page, tried.add(origin));
        return give({ response: 'ProvideCredentials', username: answer.username, password: answer.password });
      }
      const named = realm === '' ? {} : { realm: beginningOf(realm, 200) };
      const isRefused = refused.get(page)?.has(origin) ?? false;
      challenges.set(page, { origin: beginningOf(origin, 300), ...named, refused: isRefused });
    }
    return give({ response: 'CancelAuth' });
  });

  return {
    /** `origin` is that of the page's document: a challenge that another one has left behind is not the page's. */
    challengeOf(page: AttachedPage, origin: string): BasicChallenge | undefined {
      const last = page.traffic.status === 401 ? challenges.get(page) : undefined;
      const challenge = last?.origin === origin ? last : undefined;
      if (challenge) reported.set(page, challenge);
      else reported.delete(page);
      return challenge;
    },
    /** While `load` runs, a challenge of the origin to the page itself is answered with this. */
    async answer<T>(page: AttachedPage, given: BasicAnswer, load: () => Promise<T>): Promise<T> {
      const challenge = reported.get(page);
      if (!challenge) throw new FormsError('unfit', 'The page has not asked for a user and password.');
      mustAllow(given.allow, challenge.origin);
      reported.delete(page);
      challenges.delete(page);
      answers.set(page, { ...given, origin: challenge.origin });
      return load().finally(() => answers.delete(page));
    },
  };
}
