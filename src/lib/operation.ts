/** An operation of the API, as scripts/operations.mjs takes it from openapi.json when the service is built. */
export interface Operation {
  method: string;
  path: string;
  about: string;
  query: Field[];
  body: Field[];
  sends?: string;
  answers?: string;
}

export interface Field {
  name: string;
  type: 'string' | 'number' | 'boolean' | 'file' | 'json';
  about: string;
  /** Of `json`: its type, and that of its items, as JSON Schema has them. */
  kind?: { type?: string | string[]; items?: object };
  values?: string[];
  many?: boolean;
  required?: boolean;
}
