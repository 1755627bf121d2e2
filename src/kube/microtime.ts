/**
 * metav1.MicroTime: RFC 3339 in UTC with exactly six fractional digits; Lease and Event refuse anything else.
 * `ms` is milliseconds since the epoch and may carry a fraction; what is below a microsecond is cut off.
 */
export function microTime(ms: number): string {
  const whole = Math.floor(ms);
  const micros = Math.floor((ms - whole) * 1000);
  return `${new Date(whole).toISOString().slice(0, -1)}${String(micros).padStart(3, '0')}Z`;
}
