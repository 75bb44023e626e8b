/** The caller of a request: the key that was sent, and its scope. */
export interface Caller {
  readonly keyId: string;
  readonly keyName: string;
  /** The one project this key is for; null for the whole organisation. */
  readonly projectId: string | null;
  /** The key of a deployment. */
  readonly deployed?: true;
}

/** A person without a key that takes part in one flow, by a token for it. */
export interface Invitee {
  readonly connectionId: string;
  readonly flowId: string;
  readonly projectId: string;
  /** The key that the flow was started with. */
  readonly keyId: string;
}

/** What the first node found out about a request that it forwards, so that the second does not authenticate or record it again. */
export interface Passenger {
  requestId: string;
  clientIp: string;
  caller: Caller | null;
  project: { id: string; name: string } | null;
  /** sha-256 of the body, where the first node knew it: the body that arrives must match. */
  bodyDigest?: string;
}
