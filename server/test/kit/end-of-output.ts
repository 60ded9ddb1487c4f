/** Precedes the exit status in what a server host prints after each serving. */
export const END_OF_OUTPUT = '\0end '
