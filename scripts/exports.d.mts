/** Each export without an import, as a sentence. */
export function deadExports(base: string, names?: string[]): string[];
