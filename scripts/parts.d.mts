export function isRoot(): boolean;
export function isDebian(): boolean;
export function findParts(): { name: string; path?: string; without: string; required: boolean }[];
export function command(...names: string[]): string | undefined;
