/** Who asks: the key that was shown, and how far it reaches. */
export interface Caller {
  readonly keyId: string;
  readonly keyName: string;
  /** The one project this key is for; null for the whole organisation. */
  readonly projectId: string | null;
}

/** What the front door needs of the organisation's room. */
export interface Gatekeeper {
  /** `from` is the address it comes from: one that sends many keys that are not known has to wait. */
  authenticate(key: string, from: string): Promise<Caller>;
  /** The project a request works in: `selector` is what its headers name, if anything. */
  resolveProject(caller: Caller, selector: { id?: string; idOrName?: string }): Promise<{ id: string; name: string }>;
}
