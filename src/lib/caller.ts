/** The caller of a request: the key that was sent, and its scope. */
export interface Caller {
  readonly keyId: string;
  readonly keyName: string;
  /** The one project this key is for; null for the whole organisation. */
  readonly projectId: string | null;
}
