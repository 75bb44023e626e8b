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
  values?: string[];
  many?: boolean;
  required?: boolean;
}
