/** The sender of a request: the key that was shown, and how far it reaches. */
export interface Caller {
  readonly keyId: string;
  readonly keyName: string;
  /** The one project this key is for; null for the whole organisation. */
  readonly projectId: string | null;
}
