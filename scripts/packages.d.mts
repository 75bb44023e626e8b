export function packageFaults(base: string, places?: Record<string, string[]>): string[];
