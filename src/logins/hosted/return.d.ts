export function returnAddress(given: string | null, told: Record<string, string | null | undefined>): URL | undefined;
