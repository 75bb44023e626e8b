import { list, object, text } from '../../lib/shape.ts';
import type { LocalClient } from '../cdp/local-client.ts';
import { isAllowed } from './allowed.ts';
import type { AttachedPage, AttachedPages, PageCommands } from './attached-pages.ts';
import { isPasskey } from './shapes.ts';
import { FormsError, type Passkey, type Passkeys } from './types.ts';

const MOST_PASSKEYS = 100;

const isAuthenticator = object({ authenticatorId: text(128) });
const isCredentials = object({ credentials: list(isPasskey) });
const isNews = object({ authenticatorId: text(128), credential: isPasskey });

/** As a person's own device would be: keys that stay in it, a finger or a face that is always there. */
const device = {
  protocol: 'ctap2',
  ctap2Version: 'ctap2_1',
  transport: 'internal',
  hasResidentKey: true,
  hasUserVerification: true,
  isUserVerified: true,
  automaticPresenceSimulation: true,
} as const;

/** Passkeys by a virtual authenticator of the browser. It is removed when the forms detach from the page. */
export function pagePasskeys(client: LocalClient, pages: AttachedPages, commands: PageCommands): Passkeys {
  const { step } = commands.patience;
  const authenticators = new Map<AttachedPage, Promise<string>>();
  /** Kept here too, since a page may close after it has used one. */
  const known = new Map<string, Passkey>();

  function note(passkey: Passkey): void {
    if (known.size < MOST_PASSKEYS || known.has(passkey.credentialId)) known.set(passkey.credentialId, passkey);
  }
  for (const event of ['WebAuthn.credentialAdded', 'WebAuthn.credentialAsserted'] as const)
    client.on(event, isNews, ({ credential }) => isWhole(credential) && note(credential));

  async function make(page: AttachedPage): Promise<string> {
    await commands.send(step, page.sessionId, 'WebAuthn.enable', {});
    const made = await commands.ask(step, page.sessionId, isAuthenticator, 'WebAuthn.addVirtualAuthenticator', {
      options: device,
    });
    return made.authenticatorId;
  }

  function authenticatorOf(page: AttachedPage): Promise<string> {
    const made = authenticators.get(page) ?? make(page);
    authenticators.set(page, made);
    made.catch(() => authenticators.delete(page));
    return made;
  }

  async function give(page: AttachedPage, passkeys: readonly Passkey[]): Promise<void> {
    const authenticatorId = await authenticatorOf(page);
    for (const credential of passkeys)
      await commands
        .send(step, page.sessionId, 'WebAuthn.addCredential', { authenticatorId, credential })
        .catch((error: unknown) => {
          // The browser refuses passkeys that the page already has, and broken ones. The login may need another, or none.
          if (!(error instanceof FormsError) || error.fault !== 'stale') throw error;
        });
  }

  async function noteAll({ sessionId }: AttachedPage, made: Promise<string>): Promise<void> {
    const params = { authenticatorId: await made };
    const { credentials } = await commands.ask(step, sessionId, isCredentials, 'WebAuthn.getCredentials', params);
    for (const credential of credentials) if (isWhole(credential)) note(credential);
  }

  // A page that an equipped page opens, such as that of an identity provider, has the same device.
  pages.onPage((page) => {
    const opener = [...authenticators.keys()].find(({ pageId }) => pageId === page.openerId);
    if (opener) give(page, [...known.values()]).catch(() => {});
  });

  return {
    enable: async (pageId) => void (await authenticatorOf(pages.get(pageId))),

    async exported() {
      for (const [page, made] of authenticators) if (!page.gone) await noteAll(page, made).catch(() => {}); // events reported them too
      return [...known.values()];
    },

    async add(pageId, passkeys, allow) {
      if (passkeys.length > MOST_PASSKEYS) throw new FormsError('unfit', `At most ${MOST_PASSKEYS} passkeys fit.`);
      // A passkey names a host and no scheme. The browser gives it to https alone, and to the machine itself.
      const own = passkeys.filter(({ rpId }) =>
        ['https', 'http'].some((scheme) => isAllowed(allow, `${scheme}://${rpId}`)),
      );
      await give(pages.get(pageId), own);
      for (const passkey of own) note(passkey);
    },
  };
}

/** A passkey without the name of its site is of no use. */
function isWhole(passkey: Omit<Passkey, 'rpId'> & { rpId?: string }): passkey is Passkey {
  return passkey.rpId !== undefined;
}
