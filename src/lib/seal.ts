import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/**
 * Seals values at rest: AES-256-GCM, the key's id in the envelope, and the place the value belongs to as associated data,
 * so that a sealed value copied to another row does not open there.
 *
 * An envelope reads `v1.<key id>.<nonce>.<ciphertext and tag>`, each part base64url.
 */
export interface Keyring {
  /** The id of the key that new values are sealed with. */
  readonly current: string;
  readonly ids: readonly string[];
  seal(value: string, place: string): string;
  open(envelope: string, place: string): string;
  /** Bytes for another purpose (such as signing tokens), derived from one of the keys, by default the current one. */
  derive(purpose: string, keyId?: string): Buffer;
}

export class CannotOpen extends Error {
  override readonly name = 'CannotOpen';
  readonly keyId: string | undefined;
  constructor(message: string, keyId?: string) {
    super(message);
    this.keyId = keyId;
  }
}

/** Keys newest first: the first one seals, all of them open. */
export function keyring(keys: readonly Buffer[]): Keyring {
  const byId = new Map(keys.map((key) => [keyId(key), key]));
  const [first] = byId.keys();
  if (first === undefined) throw new Error('A keyring needs at least one key.');
  const keyFor = (id: string) => {
    const key = byId.get(id);
    if (!key) throw new CannotOpen(`This was sealed with key ${id}, which is not among the keys here.`, id);
    return key;
  };

  /** A list of sessions has hundreds of tokens. There are few purposes. */
  const derived = new Map<string, Buffer>();

  return {
    current: first,
    ids: [...byId.keys()],

    seal(value, place) {
      const nonce = randomBytes(12);
      const cipher = createCipheriv('aes-256-gcm', keyFor(first), nonce).setAAD(Buffer.from(place));
      const sealed = Buffer.concat([cipher.update(value, 'utf8'), cipher.final(), cipher.getAuthTag()]);
      return ['v1', first, nonce.toString('base64url'), sealed.toString('base64url')].join('.');
    },

    open(envelope, place) {
      const [version, id, nonce, body, ...rest] = envelope.split('.');
      if (version !== 'v1' || !id || !nonce || !body || rest.length > 0) throw new CannotOpen('Not a sealed value.');
      const key = keyFor(id);
      const sealed = Buffer.from(body, 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
          .setAAD(Buffer.from(place))
          .setAuthTag(sealed.subarray(-16));
        return Buffer.concat([decipher.update(sealed.subarray(0, -16)), decipher.final()]).toString('utf8');
      } catch {
        throw new CannotOpen(`The value sealed for ${place} was changed or belongs to another place.`, id);
      }
    },

    derive(purpose, id = first) {
      const name = `${id} ${purpose}`;
      const known = derived.get(name) ?? Buffer.from(hkdfSync('sha256', keyFor(id), '', purpose, 32));
      derived.set(name, known);
      return known;
    },
  };
}

/** Public: it is part of every envelope. Eight hex digits of a hash reveal nothing of the key. */
function keyId(key: Buffer): string {
  return createHash('sha256').update('key id').update(key).digest('hex').slice(0, 8);
}

/** 32 bytes as 64 hex digits or in base64; anything else is refused rather than stretched into a key. */
export function parseKey(text: string): Buffer | undefined {
  const key = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
  return key.length === 32 && /^[\w+/=-]+$/.test(text) ? key : undefined;
}

export const newKey = () => randomBytes(32).toString('base64');
