/** The values of `validate --output`. */
export const OUTPUTS = ['human', 'json', 'sarif', 'github'] as const;
export type Output = (typeof OUTPUTS)[number];
